// A robot as ROS 2 shows it on DDS: topics, types, quality of service and one action server as rmw_fastrtps has them,
// on Fast DDS alone. It shares no code with the package under test.
//
//   robot DOMAIN ADDRESS LEASE_S [JPEG]
//
// It uses the network interface that has the address, and no other. One command per line on standard input; `state` answers with a line of JSON.

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SampleIdentity;
using eprosima::fastrtps::rtps::SerializedPayload_t;
using eprosima::fastrtps::rtps::WriteParams;
using Bytes = std::vector<uint8_t>;

constexpr double TICK_S = 0.01;
constexpr double WATCHDOG_S = 0.5;  // a base stands when nobody commands, as those of ROS do
constexpr double WALL_M = 8.0;

// ---- CDR, by hand -------------------------------------------------------------------------------------------------

struct Out {
    Bytes data{0, 1, 0, 0};

    template <typename T>
    Out& put(T value) {
        while ((data.size() - 4) % sizeof(T)) data.push_back(0);
        const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
        data.insert(data.end(), bytes, bytes + sizeof(T));
        return *this;
    }
    Out& text(const std::string& value) {
        put<uint32_t>(value.size() + 1);
        data.insert(data.end(), value.c_str(), value.c_str() + value.size() + 1);
        return *this;
    }
    Out& raw(const Bytes& value) {
        data.insert(data.end(), value.begin(), value.end());
        return *this;
    }
    Out& doubles(std::initializer_list<double> values) {
        for (double value : values) put(value);
        return *this;
    }
    Out& stamp(double now) {
        return put<int32_t>(now).put<uint32_t>((now - std::floor(now)) * 1e9);
    }
    Out& header(double now, const std::string& frame) { return stamp(now).text(frame); }
    Out& yaw(double angle) { return doubles({0, 0, std::sin(angle / 2), std::cos(angle / 2)}); }
};

struct In {
    const Bytes& data;
    size_t at = 4;

    template <typename T>
    T get() {
        while ((at - 4) % sizeof(T)) ++at;
        T value{};
        if (at + sizeof(T) <= data.size()) std::memcpy(&value, &data[at], sizeof(T));
        at += sizeof(T);
        return value;
    }
    std::string text() {
        uint32_t size = get<uint32_t>();
        if (!size || at + size > data.size()) return "";
        at += size;
        return std::string(data.begin() + at - size, data.begin() + at - 1);
    }
    Bytes bytes(size_t size) {
        at += size;
        return at <= data.size() ? Bytes(data.begin() + at - size, data.begin() + at) : Bytes(size);
    }
};

// One class for all types: their bytes.
class Type : public TopicDataType {
public:
    explicit Type(const std::string& name) {
        setName(name.c_str());
        m_typeSize = 1 << 20;
        m_isGetKeyDefined = false;
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }
    bool serialize(void* data, SerializedPayload_t* payload) override {
        const auto& bytes = *static_cast<Bytes*>(data);
        if (payload->max_size < bytes.size()) payload->reserve(bytes.size());
        std::memcpy(payload->data, bytes.data(), bytes.size());
        payload->length = bytes.size();
        payload->encapsulation = CDR_LE;
        return true;
    }
    bool deserialize(SerializedPayload_t* payload, void* data) override {
        static_cast<Bytes*>(data)->assign(payload->data, payload->data + payload->length);
        return true;
    }
    std::function<uint32_t()> getSerializedSizeProvider(void* data) override {
        return [data] { return static_cast<uint32_t>(static_cast<Bytes*>(data)->size()); };
    }
    void* createData() override { return new Bytes; }
    void deleteData(void* data) override { delete static_cast<Bytes*>(data); }
    bool getKey(void*, InstanceHandle_t*, bool) override { return false; }
};

// ---- what a node of ROS has on DDS --------------------------------------------------------------------------------

struct Quality {
    bool reliable = true;
    bool transient_local = false;
    int depth = 10;
};
constexpr Quality SENSOR{false, false, 5};
constexpr Quality DEFAULT{};
constexpr Quality STATUS{true, true, 1};

class Node {
public:
    Node(int domain, const std::string& address, int lease_s) {
        DomainParticipantQos qos;
        auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
        udp->interfaceWhiteList.push_back(address);
        qos.transport().use_builtin_transports = false;
        qos.transport().user_transports.push_back(udp);
        qos.wire_protocol().builtin.discovery_config.leaseDuration = {lease_s, 0};
        qos.wire_protocol().builtin.discovery_config.leaseDuration_announcementperiod = {1, 0};
        participant_ = DomainParticipantFactory::get_instance()->create_participant(domain, qos);
        if (!participant_) {
            std::cout << "no participant can be had at " << address << std::endl;
            std::exit(1);
        }
        publisher_ = participant_->create_publisher(PUBLISHER_QOS_DEFAULT);
        subscriber_ = participant_->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
    }
    ~Node() {
        participant_->delete_contained_entities();
        DomainParticipantFactory::get_instance()->delete_participant(participant_);
    }
    DataWriter* writer(const std::string& topic, const std::string& type, Quality quality = DEFAULT) {
        return publisher_->create_datawriter(this->topic(topic, type), with(DATAWRITER_QOS_DEFAULT, quality));
    }
    DataReader* reader(const std::string& topic, const std::string& type, Quality quality = DEFAULT) {
        return subscriber_->create_datareader(this->topic(topic, type), with(DATAREADER_QOS_DEFAULT, quality));
    }
    void close(DataWriter* writer) { publisher_->delete_datawriter(writer); }

private:
    Topic* topic(const std::string& name, const std::string& type) {
        if (!topics_.count(name)) {
            TypeSupport(new Type(type)).register_type(participant_);
            topics_[name] = participant_->create_topic(name, type, TOPIC_QOS_DEFAULT);
        }
        return topics_[name];
    }
    template <typename Qos>
    Qos with(Qos qos, Quality quality) {
        qos.reliability().kind = quality.reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
        qos.durability().kind = quality.transient_local ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
        qos.history().kind = KEEP_LAST_HISTORY_QOS;
        qos.history().depth = quality.depth;
        qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
        return qos;
    }

    DomainParticipant* participant_;
    Publisher* publisher_;
    Subscriber* subscriber_;
    std::map<std::string, Topic*> topics_;
};

bool take(DataReader* reader, Bytes& data, SampleInfo& info) {
    while (reader->take_next_sample(&data, &info) == ReturnCode_t::RETCODE_OK)
        if (info.valid_data) return true;
    return false;
}

double seconds() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// ---- the robot ----------------------------------------------------------------------------------------------------

struct Base {
    double x = 0, y = 0, yaw = 0, vx = 0, vy = 0, wz = 0, commanded_at = 0;
    long commands = 0;

    void command(double ahead, double aside, double turn, double now) {
        vx = ahead, vy = aside, wz = turn, commanded_at = now, ++commands;
    }
    void tick(double now) {
        if (now - commanded_at > WATCHDOG_S) vx = vy = wz = 0;
        x += (vx * std::cos(yaw) - vy * std::sin(yaw)) * TICK_S;
        y += (vx * std::sin(yaw) + vy * std::cos(yaw)) * TICK_S;
        yaw = std::remainder(yaw + wz * TICK_S, 2 * M_PI);
    }
    // Metres to the wall of a square room, in a direction of the room.
    double wall(double direction) const {
        double c = std::cos(direction), s = std::sin(direction);
        double across = c > 0 ? (WALL_M - x) / c : (-WALL_M - x) / std::min(c, -1e-9);
        double along = s > 0 ? (WALL_M - y) / s : (-WALL_M - y) / std::min(s, -1e-9);
        return std::min(across, along);
    }
};

// nav2_msgs/action/NavigateToPose, as the server of rclcpp_action does it. It rejects goals beyond 100 m, never answers
// those beyond 200 m, and aborts those beyond 50 m.
class Navigator {
public:
    Navigator(Node& node, Base& base)
        : base_(base),
          goals_(node.reader(request("send_goal"), type("SendGoal_Request"))),
          accepted_(node.writer(reply("send_goal"), type("SendGoal_Response"))),
          result_wanted_(node.reader(request("get_result"), type("GetResult_Request"))),
          results_(node.writer(reply("get_result"), type("GetResult_Response"))),
          cancels_(node.reader(request("cancel_goal"), "action_msgs::srv::dds_::CancelGoal_Request_")),
          cancelled_(node.writer(reply("cancel_goal"), "action_msgs::srv::dds_::CancelGoal_Response_")),
          feedback_(node.writer("rt/navigate_to_pose/_action/feedback", type("FeedbackMessage"))),
          velocity_(node.writer("rt/cmd_vel_nav", "geometry_msgs::msg::dds_::Twist_")),
          status_(node.writer("rt/navigate_to_pose/_action/status", "action_msgs::msg::dds_::GoalStatusArray_", STATUS)) {}

    void tick(double now) {
        Bytes data;
        SampleInfo info;
        while (take(goals_, data, info)) take_goal(data, info.sample_identity, now);
        while (take(cancels_, data, info)) cancel(data, info.sample_identity, now);
        while (take(result_wanted_, data, info)) {
            In in{data};
            Bytes id = in.bytes(16);
            if (id == id_ && status_now_ >= 4) send_result(info.sample_identity);
            else if (id == id_) waiting_.push_back(info.sample_identity);
        }
        if (status_now_ == 2) drive(now);
    }
    bool stubborn = false;  // does not obey cancels
    bool yields = false;    // its velocities go to whoever gates them
    int status_now_ = 0;    // of action_msgs/msg/GoalStatus
    long goals = 0, cancels = 0;

private:
    static std::string type(const std::string& part) { return "nav2_msgs::action::dds_::NavigateToPose_" + part + "_"; }
    static std::string request(const std::string& service) { return "rq/navigate_to_pose/_action/" + service + "Request"; }
    static std::string reply(const std::string& service) { return "rr/navigate_to_pose/_action/" + service + "Reply"; }

    void answer(DataWriter* writer, Out out, const SampleIdentity& request) {
        WriteParams parameters;
        parameters.related_sample_identity(request);
        writer->write(&out.data, parameters);
    }
    void take_goal(const Bytes& data, const SampleIdentity& request, double now) {
        In in{data};
        Bytes id = in.bytes(16);
        in.get<int32_t>(), in.get<uint32_t>();
        std::string frame = in.text();
        double x = in.get<double>(), y = in.get<double>();
        ++goals;
        double far = std::hypot(x, y);
        if (far > 200) return;
        bool accept = far <= 100 && frame == "map" && status_now_ != 2;
        Out out;
        out.put<uint8_t>(accept).stamp(now);
        answer(accepted_, out, request);
        if (!accept) return;
        id_ = id, x_ = x, y_ = y, began_ = now;
        set_status(2, now);
    }
    void cancel(const Bytes& data, const SampleIdentity& request, double now) {
        In in{data};
        Bytes id = in.bytes(16);
        ++cancels;
        int code = id != id_ ? 2 : status_now_ != 2 ? 3 : stubborn ? 1 : 0;  // of action_msgs/srv/CancelGoal
        Out out;
        out.put<int8_t>(code).put<uint32_t>(!code);
        if (!code) out.raw(id_).stamp(began_);
        answer(cancelled_, out, request);
        if (!code) finish(5, now);
    }
    void drive(double now) {
        double ahead = x_ - base_.x, aside = y_ - base_.y, left = std::hypot(ahead, aside);
        if (std::hypot(x_, y_) > 50) return finish(6, now);
        if (left < 0.05) return finish(4, now);
        double speed = std::min(0.8, 2 * left), c = std::cos(base_.yaw), s = std::sin(base_.yaw);
        command(speed * (ahead * c + aside * s) / left, speed * (aside * c - ahead * s) / left, now);
        if (now - told_ < 0.1) return;
        told_ = now;
        Out out;
        out.raw(id_).header(now, "map").doubles({base_.x, base_.y, 0}).yaw(base_.yaw);
        out.put<int32_t>(now - began_).put<uint32_t>(0).put<int32_t>(left / speed).put<uint32_t>(0);
        out.put<int16_t>(0).put<float>(left);
        feedback_->write(&out.data);
    }
    void command(double ahead, double aside, double now) {
        if (!yields) return base_.command(ahead, aside, 0, now);
        Out out;
        out.doubles({ahead, aside, 0, 0, 0, 0});
        velocity_->write(&out.data);
    }
    void finish(int status, double now) {
        command(0, 0, now);
        status_now_ = status;
        for (const auto& request : waiting_) send_result(request);
        waiting_.clear();
        set_status(status, now);
    }
    void send_result(const SampleIdentity& request) {
        Out out;
        out.put<int8_t>(status_now_).put<uint8_t>(0);  // std_msgs/Empty
        answer(results_, out, request);
    }
    void set_status(int status, double) {
        status_now_ = status;
        Out out;
        out.put<uint32_t>(1).raw(id_).stamp(began_).put<int8_t>(status);
        status_->write(&out.data);
    }

    Base& base_;
    DataReader* goals_;
    DataWriter* accepted_;
    DataReader* result_wanted_;
    DataWriter* results_;
    DataReader* cancels_;
    DataWriter* cancelled_;
    DataWriter* feedback_;
    DataWriter* velocity_;
    DataWriter* status_;
    Bytes id_ = Bytes(16);
    double x_ = 0, y_ = 0, began_ = 0, told_ = 0;
    std::vector<SampleIdentity> waiting_;
};

int main(int count, char** arguments) {
    if (count < 4) return 2;
    Node node(std::atoi(arguments[1]), arguments[2], std::atoi(arguments[3]));
    Bytes picture;
    if (count > 4) {
        std::ifstream file(arguments[4], std::ios::binary);
        picture.assign(std::istreambuf_iterator<char>(file), {});
    }
    Base base;
    Navigator navigator(node, base);
    DataReader* cmd_vel = node.reader("rt/cmd_vel", "geometry_msgs::msg::dds_::Twist_");
    DataReader* stamped = node.reader("rt/cmd_vel_stamped", "geometry_msgs::msg::dds_::TwistStamped_");
    DataWriter* odom = node.writer("rt/odom", "nav_msgs::msg::dds_::Odometry_");
    DataWriter* scan = node.writer("rt/scan", "sensor_msgs::msg::dds_::LaserScan_", SENSOR);
    DataWriter* tf = node.writer("rt/tf", "tf2_msgs::msg::dds_::TFMessage_");
    DataWriter* image = node.writer("rt/camera/image_raw/compressed", "sensor_msgs::msg::dds_::CompressedImage_", SENSOR);
    DataWriter* pose = node.writer("rt/pose", "geometry_msgs::msg::dds_::PoseStamped_", SENSOR);  // no odometry
    bool odometry = true, broken = false;
    std::string input;
    long tick = 0;
    double next = seconds();
    std::printf("ready\n");
    std::fflush(stdout);
    for (;; ++tick) {
        double now = seconds();
        pollfd keyboard{STDIN_FILENO, POLLIN, 0};
        if (poll(&keyboard, 1, 0) > 0) {
            char buffer[256];
            ssize_t size = read(STDIN_FILENO, buffer, sizeof buffer);
            if (size <= 0) return 0;  // whoever started it is gone
            input.append(buffer, size);
            for (size_t end; (end = input.find('\n')) != std::string::npos; input.erase(0, end + 1)) {
                std::string command = input.substr(0, end);
                if (command == "mute") odometry = false;
                if (command == "unmute") odometry = true;
                if (command == "break") broken = true;
                if (command == "mend") broken = false;
                if (command == "stubborn") navigator.stubborn = true;
                if (command == "obey") navigator.stubborn = false;
                if (command == "yield") navigator.yields = true;
                std::printf("{\"x\": %.4f, \"y\": %.4f, \"yaw\": %.4f, \"vx\": %.4f, \"vy\": %.4f, \"wz\": %.4f, "
                            "\"commands\": %ld, \"goals\": %ld, \"cancels\": %ld, \"status\": %d}\n",
                            base.x, base.y, base.yaw, base.vx, base.vy, base.wz, base.commands, navigator.goals,
                            navigator.cancels, navigator.status_now_);
                std::fflush(stdout);
            }
        }
        Bytes data;
        SampleInfo info;
        for (DataReader* reader : {cmd_vel, stamped})
            while (take(reader, data, info)) {
                In in{data};
                if (reader == stamped) in.get<int32_t>(), in.get<uint32_t>(), in.text();
                double vx = in.get<double>(), vy = in.get<double>();
                in.get<double>(), in.get<double>(), in.get<double>();
                base.command(vx, vy, in.get<double>(), now);
            }
        navigator.tick(now);
        base.tick(now);
        if (tick % 5 == 0 && odometry) {
            Out out;
            out.header(now, "odom").text("base_link").doubles({base.x, base.y, 0}).yaw(base.yaw);
            for (int i = 0; i < 36; ++i) out.put<double>(0);
            out.doubles({base.vx, base.vy, 0, 0, 0, base.wz});
            for (int i = 0; i < 36; ++i) out.put<double>(0);
            if (broken) out.data.resize(100);
            odom->write(&out.data);
            Out frames;
            frames.put<uint32_t>(1).header(now, "odom").text("base_link").doubles({base.x, base.y, 0}).yaw(base.yaw);
            tf->write(&frames.data);
            Out place;
            place.header(now, "odom").doubles({base.x, base.y, 0}).yaw(base.yaw);
            pose->write(&place.data);
        }
        if (tick % 10 == 0) {
            Out out;
            out.header(now, "base_link").put<float>(-M_PI).put<float>(M_PI - M_PI / 180).put<float>(M_PI / 180);
            out.put<float>(0).put<float>(0.1).put<float>(0.05).put<float>(20).put<uint32_t>(360);
            for (int i = 0; i < 360; ++i) out.put<float>(base.wall(base.yaw - M_PI + i * M_PI / 180));
            out.put<uint32_t>(0);
            scan->write(&out.data);
        }
        if (tick % 20 == 0 && !picture.empty()) {
            Out out;
            out.header(now, "camera_optical").text("jpeg").put<uint32_t>(picture.size()).raw(picture);
            image->write(&out.data);
        }
        next += TICK_S;
        double wait = next - seconds();
        if (wait > 0) usleep(wait * 1e6);
        else next = seconds();
    }
}
